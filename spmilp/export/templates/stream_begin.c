    for (uint32_t i = 0; i < @STATES@U; i++) {
        const struct spmilp_port *port =
            find(SPMILP_PORT_INPUT, i + @ROUNDS@U * @INPUT_PORTS@U);
        file = open_at(inputs[@INPUT_PORTS@U + i], "rb", 0U);
        if (fread(given, 1U, (size_t)port->bytes, file) != (size_t)port->bytes) {
            fail(inputs[@INPUT_PORTS@U + i]);
        }
        fclose(file);
        spmilp_write_input(player, port, (const uint8_t *)given);
    }
