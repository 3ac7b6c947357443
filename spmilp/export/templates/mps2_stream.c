    char name[] = "input#.bin";
    port = spmilp_find_port(tables, SPMILP_PORT_INPUT, 0U);
    require(port != (const struct spmilp_port *)0, "there is no input");
    const uintptr_t first[1] = {(uintptr_t)open_file(name, 0U, READ_BINARY)};
    @NAME@_inferences = (uint32_t)ask_host(SYS_FLEN, first) / (uint32_t)port->bytes;
    ask_host(SYS_CLOSE, first);
    wrong = spmilp_play_loop(player);
    require(!wrong, wrong);
