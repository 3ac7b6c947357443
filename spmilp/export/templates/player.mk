@STAMP_OF_MAKEFILE@

# make -f @MAKEFILE@            the program for this host: PREFIX_play [--loop] INPUT... OUTPUT...
# make -f @MAKEFILE@ mps2       a program without operating system for an Arm MPS2 (QEMU)

PREFIX = @PROGRAM@
CFLAGS = -O2
# Results are those of the value replay if every operation of float is rounded by itself.
C99 = -std=c99 -ffp-contract=off -DSPMILP_MAX_INPUTS=@INPUTS@U
WARNINGS = -pedantic -Wall -Wextra -Wconversion -Werror
ARM = arm-none-eabi-
ARM_FLAGS = -mcpu=cortex-m3 -mthumb -ffunction-sections -fdata-sections

RUNTIME = @RUNTIME@
HOST = spmilp_threads.c spmilp_files.c
PLAN = $(PREFIX)_program.c @SOURCES@
IMAGE = @IMAGE_BINARY@
HEADERS = $(wildcard *.h)
@VENDORS@
$(PREFIX)_play: $(PREFIX)_main.c $(PLAN) $(RUNTIME) $(HOST) $(IMAGE) $(VENDOR) $(HEADERS) @MAKEFILE@
	$(if $(IMAGE),$(LD) -r -b binary -z noexecstack $(IMAGE) -o $(IMAGE:.bin=.o))
	$(CC) $(C99) $(WARNINGS) $(CFLAGS) $(filter %.c,$^) $(IMAGE:.bin=.o) $(VENDOR) -o $@ -pthread -lm

.PHONY: mps2
mps2: $(PREFIX)_mps2.elf

# One loop needs one workspace.
$(PREFIX)_mps2.elf: $(PREFIX)_mps2.c $(PLAN) $(RUNTIME) $(IMAGE) $(VENDOR_MPS2) $(HEADERS) spmilp_mps2.ld @MAKEFILE@
	$(if $(IMAGE),$(ARM)ld -r -b binary $(IMAGE) -o $(IMAGE:.bin=_mps2.o))
	$(ARM)gcc $(C99) $(WARNINGS) $(CFLAGS) $(ARM_FLAGS) -DSPMILP_WORKSPACES=1 -nostartfiles \
	    -T spmilp_mps2.ld -Wl,--gc-sections $(filter %.c,$^) $(IMAGE:.bin=_mps2.o) $(VENDOR_MPS2) -o $@ -lm
