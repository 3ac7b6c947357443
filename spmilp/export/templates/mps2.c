/*
 * A program that runs a plan; @MAKEFILE@ builds it.
 *
@STAMP@
 */

/*
 * Runs the plan in one loop on an Arm MPS2 (AN385, Cortex-M3) without an operating system. Inputs
 * come from input0.bin, input1.bin... and outputs go to output0.bin... by semihosting. A board of
 * one's own needs other vectors, another way in and out, and another linker script; what is between
 * stays.
 */

#include <stddef.h>
#include <string.h>

#include "@NAME@.h"
#include "@PROGRAM@_program.h"

/* Semihosting for AArch32: operation in r0, address of its words in r1 (Arm IHI 0101). */
enum { SYS_OPEN = 0x01, SYS_CLOSE = 0x02, SYS_WRITE0 = 0x04, SYS_WRITE = 0x05, SYS_READ = 0x06 };
enum { SYS_EXIT = 0x18, RUN_TIME_ERROR = 0x20023, APPLICATION_EXIT = 0x20026 };
enum { READ_BINARY = 1, WRITE_BINARY = 5 };

static int ask_host(int operation, const void *words)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = words;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static uintptr_t address(const void *object)
{
    return (uintptr_t)object;
}

static void stop(int has_failed)
{
    ask_host(SYS_EXIT, (const void *)(uintptr_t)(has_failed ? RUN_TIME_ERROR : APPLICATION_EXIT));
    for (;;) {
    }
}

/* Check the result of a call, or end the program. */
static void require(int holds, const char *otherwise)
{
    if (!holds) {
        ask_host(SYS_WRITE0, otherwise);
        ask_host(SYS_WRITE0, "\n");
        stop(1);
    }
}

static int open_file(char *name, uint32_t number, uintptr_t mode)
{
    char *digit = strchr(name, '#');
    require(number < 10U && digit != (char *)0, "more than ten files");
    *digit = (char)('0' + (int)number);
    const uintptr_t words[3] = {address(name), mode, strlen(name)};
    const int file = ask_host(SYS_OPEN, words);
    require(file >= 0, name);
    return file;
}

static uint64_t packed[(@UPPER_PROGRAM@_PROGRAM_LARGEST_PORT_BYTES + 7U) / 8U];

/* Read or write the file of a port through `packed`. */
static void transfer(int operation, int file, size_t size)
{
    const uintptr_t words[3] = {(uintptr_t)file, address(packed), size};
    require(ask_host(operation, words) == 0, "a file is too short, or cannot be written");
    const uintptr_t closed[1] = {(uintptr_t)file};
    ask_host(SYS_CLOSE, closed);
}

@HOOKS@int main(void)
{
    const struct spmilp_player *player = &@PROGRAM@_program;
    const struct spmilp_tables *tables = player->tables;
    const struct spmilp_port *port;
    const char *wrong = @PROGRAM@_program_prepare();
    require(!wrong, wrong);
@MAIN@
    return 0;
}

/* Given by spmilp_mps2.ld. */
extern char data_start[], data_end[], data_image[], bss_start[], bss_end[], stack_top[];
void reset(void);

void reset(void)
{
    memcpy(data_start, data_image, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    stop(main());
}

static void fault(void)
{
    require(0, "fault");
}

/* Stack, reset, and the faults of a Cortex-M; no interrupt is enabled. */
struct vectors {
    const void *stack;
    void (*handlers[15])(void);
};

extern const struct vectors vectors;
__attribute__((section(".vectors"), used)) const struct vectors vectors = {
    stack_top, {reset, fault, fault, fault, fault, fault}};
