    for (uint32_t i = 0; (port = spmilp_find_port(tables, SPMILP_PORT_INPUT, i)); i++) {
        char name[] = "input#.bin";
        transfer(SYS_READ, open_file(name, i, READ_BINARY), (size_t)port->bytes);
        spmilp_write_input(player, port, (const uint8_t *)packed);
    }
    wrong = spmilp_play_loop(player);
    require(!wrong, wrong);
    for (uint32_t i = 0; (port = spmilp_find_port(tables, SPMILP_PORT_OUTPUT, i)); i++) {
        char name[] = "output#.bin";
        spmilp_read_output(player, port, (uint8_t *)packed);
        transfer(SYS_WRITE, open_file(name, i, WRITE_BINARY), (size_t)port->bytes);
    }