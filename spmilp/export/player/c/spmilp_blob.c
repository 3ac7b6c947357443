#include "spmilp_blob.h"

#include <string.h>

#define HEAD_BYTES 144U
#define SECTION_BYTES 16U

static uint32_t word(const uint8_t *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

/* CRC-32 of IEEE 802.3, bit by bit: no table to keep. */
static uint32_t checksum(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (UINT32_C(0xEDB88320) & (0U - (crc & 1U)));
        }
    }
    return ~crc;
}

static int is_little_endian(void)
{
    const uint32_t one = 1U;
    uint8_t first;
    memcpy(&first, &one, 1U);
    return first == 1U;
}

#define TABLE(code, name)                                                                          \
    case code:                                                                                     \
        if (stride != sizeof *tables->name) {                                                      \
            return "a section has rows of another size than this program knows";                   \
        }                                                                                          \
        tables->name = rows;                                                                       \
        tables->name##_count = count;                                                              \
        return (const char *)0

/* Point at one section; codes are those of docs/exports.md, unknown ones are skipped. */
static const char *open_section(uint32_t code, const void *rows, uint32_t count, uint32_t stride,
                                struct spmilp_tables *tables)
{
    switch (code) {
        TABLE(1, summary);
        TABLE(2, memories);
        TABLE(3, cores);
        TABLE(4, engines);
        TABLE(5, tensors);
        TABLE(6, buffers);
        TABLE(7, residencies);
        TABLE(8, operands);
        TABLE(9, tasks);
        TABLE(10, transfers);
        TABLE(11, copies);
        TABLE(12, loops);
        TABLE(13, lists);
        TABLE(14, commands);
        TABLE(15, ports);
        TABLE(16, segments);
        TABLE(17, values);
        TABLE(18, scales);
        TABLE(19, pieces);
        TABLE(20, views);
        TABLE(21, steps);
        TABLE(22, attributes);
        TABLE(101, words);
        TABLE(102, texts);
        TABLE(103, image);
    default:
        return (const char *)0;
    }
}

const char *spmilp_open_blob(const uint8_t *data, size_t size, struct spmilp_tables *tables)
{
    memset(tables, 0, sizeof *tables);
    if (!is_little_endian()) {
        return "the file can only be used where it lies on a little-endian machine";
    }
    if (size < HEAD_BYTES + 4U || memcmp(data, "SPMB", 4U) != 0 || word(data + 12) != size) {
        return "this is no whole file of the format spmb";
    }
    if (((uint32_t)data[4] | (uint32_t)data[5] << 8) != SPMILP_FORMAT_MAJOR) {
        return "the file has another major version of the format";
    }
    if (checksum(data, size - 4U) != word(data + size - 4U)) {
        return "the checksum of the file is wrong";
    }
    const uint32_t index = word(data + 8), sections = word(data + 16);
    if (index > size || sections > (size - index) / SECTION_BYTES) {
        return "the section table lies outside the file";
    }
    for (uint32_t number = 0; number < sections; number++) {
        const uint8_t *section = data + index + (size_t)number * SECTION_BYTES;
        const uint32_t offset = word(section + 4), count = word(section + 8);
        const uint32_t stride = word(section + 12);
        if (offset > size || (uint64_t)count * stride > size - offset) {
            return "a section lies outside the file";
        }
        if (offset % 8U != 0U) {
            return "a section does not begin at a multiple of 8";
        }
        const char *wrong = open_section(word(section), data + offset, count, stride, tables);
        if (wrong) {
            return wrong;
        }
    }
    return tables->summary_count == 1U ? (const char *)0 : "the file has no summary";
}
