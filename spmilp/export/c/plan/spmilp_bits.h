#ifndef SPMILP_BITS_H
#define SPMILP_BITS_H

/* Fields, numbers and symbols of the bits of a plan. */

#include <stdint.h>
#include <string.h>

#include "spmilp_packed.h"

struct reader {
    const uint8_t *bits;
    uint32_t at;
};

/* The next `width` bits, the lowest first; at most 24. Four bytes are read at once, on a processor
   whose words begin with their lowest byte; four bytes behind the last are there for that. */
static uint32_t take(struct reader *reader, uint32_t width)
{
    uint32_t window;
    memcpy(&window, reader->bits + reader->at / 8U, sizeof window);
    window >>= reader->at % 8U;
    reader->at += width;
    return window & ((1U << width) - 1U);
}

/* The next `width` bits; at most 32. */
static uint32_t take_wide(struct reader *reader, uint32_t width)
{
    const uint32_t first = width > 16U ? 16U : width;
    const uint32_t low = take(reader, first);
    return width > first ? low | take(reader, width - first) << 16 : low;
}

/* A number of any size: 0, from 1 on, from 9 on, or how many bits it has and those below the
   highest. */
static uint32_t number(struct reader *reader)
{
    uint32_t width;
    switch (take(reader, 2U)) {
    case 0U:
        return 0U;
    case 1U:
        return 1U + take(reader, 3U);
    case 2U:
        return 9U + take(reader, 6U);
    default:
        width = take(reader, 5U);
        return 1U << (width - 1U) | take_wide(reader, width - 1U);
    }
}

static uint32_t entry(const struct spmilp_packed *packed, const struct spmilp_packed_table *table,
                      uint32_t row)
{
    struct reader reader = {packed->bits, table->at + row * table->width};
    return take_wide(&reader, table->width);
}

static struct reader at_row(const struct spmilp_packed *packed,
                            const struct spmilp_packed_table *table, uint32_t row)
{
    const struct reader found = {packed->bits, entry(packed, table, row)};
    return found;
}

/* A symbol of a prefix code. Codes of one length follow each other, and the longer ones them; the
   table says how many there are of each length, and the symbols in that order. */
static uint32_t symbol(struct reader *reader, struct reader table)
{
    const uint32_t head = take(&table, 15U);
    const uint32_t width = head & 31U, count_bits = head >> 5 & 31U, longest = head >> 10;
    const uint32_t symbols = table.at + (longest + 1U) * count_bits, start = reader->at;
    uint32_t ahead = take(reader, longest), length = 0U;
    uint32_t before = 0U, code = 0U; /* codes that are shorter; behind the first of this length */
    for (uint32_t count = take(&table, count_bits); code >= count;
         count = take(&table, count_bits)) {
        before += count;
        code = (code - count) << 1 | (ahead & 1U);
        ahead >>= 1;
        length++;
    }
    reader->at = start + length;
    table.at = symbols + (before + code) * width;
    return take(&table, width);
}

#endif
