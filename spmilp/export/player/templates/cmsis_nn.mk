
# make -f code.mk CMSIS_NN=DIR   kernels of CMSIS-NN (its checkout) where they fit: spmilp_cmsis_nn.h
ifdef CMSIS_NN
C99 += -isystem $(CMSIS_NN)/Include -DSPMILP_KERNEL_ADD=spmilp_cmsis_add \
    -DSPMILP_KERNEL_AVERAGEPOOL=spmilp_cmsis_average_pool \
    -DSPMILP_KERNEL_CONV=spmilp_cmsis_conv -DSPMILP_KERNEL_GEMM=spmilp_cmsis_gemm \
    -DSPMILP_KERNEL_MAXPOOL=spmilp_cmsis_max_pool -DSPMILP_KERNEL_SOFTMAX=spmilp_cmsis_softmax
RUNTIME += spmilp_cmsis_products.c spmilp_cmsis_others.c
VENDOR = cmsis_nn.o
VENDOR_MPS2 = cmsis_nn_mps2.o
endif
.DEFAULT_GOAL = $(PREFIX)_play

CMSIS_SOURCES = $(wildcard $(CMSIS_NN)/Source/*/*.c)
cmsis_nn.o: $(CMSIS_SOURCES)
	$(CC) $(CFLAGS) -w -I$(CMSIS_NN)/Include -r -nostdlib $(CMSIS_SOURCES) -o $@
cmsis_nn_mps2.o: $(CMSIS_SOURCES)
	$(ARM)gcc $(CFLAGS) $(ARM_FLAGS) -w -I$(CMSIS_NN)/Include -r -nostdlib $(CMSIS_SOURCES) -o $@
