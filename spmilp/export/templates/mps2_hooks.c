enum { SYS_SEEK = 0x0A, SYS_FLEN = 0x0C, CHANGE_BINARY = 3 };

/* Files have those of all inferences, one behind the other. */
static void transfer_at(int operation, int file, const struct spmilp_port *port, uint32_t inference)
{
    const uintptr_t words[2] = {(uintptr_t)file, (uintptr_t)port->bytes * inference};
    require(ask_host(SYS_SEEK, words) == 0, "a file is too short");
    transfer(operation, file, (size_t)port->bytes);
}

int spmilp_hand_in(uint32_t inference)
{
    const struct spmilp_player *player = &@PROGRAM@_program;
    for (uint32_t i = 0; i < @INPUT_PORTS@U; i++) {
        const struct spmilp_port *port = spmilp_find_port(
            player->tables, SPMILP_PORT_INPUT, i + inference % @ROUNDS@U * @INPUT_PORTS@U);
        char name[] = "input#.bin";
        transfer_at(SYS_READ, open_file(name, i, READ_BINARY), port, inference);
        spmilp_write_input(player, port, (const uint8_t *)packed);
    }
    return 1;
}

int spmilp_take(uint32_t inference)
{
    const struct spmilp_player *player = &@PROGRAM@_program;
    for (uint32_t i = 0; i < @OUTPUT_PORTS@U; i++) {
        const struct spmilp_port *port = spmilp_find_port(
            player->tables, SPMILP_PORT_OUTPUT, i + inference % @ROUNDS@U * @OUTPUT_PORTS@U);
        char name[] = "output#.bin";
        spmilp_read_output(player, port, (uint8_t *)packed);
        const uintptr_t mode = inference > 0U ? CHANGE_BINARY : WRITE_BINARY;
        transfer_at(SYS_WRITE, open_file(name, i, mode), port, inference);
    }
    return 1;
}

