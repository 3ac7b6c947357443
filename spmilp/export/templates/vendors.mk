
# Kernels of others where they fit, reference kernels elsewhere:
# make -f @MAKEFILE@ CMSIS_NN=DIR   CMSIS-NN's checkout: spmilp_cmsis_nn.h
# make -f @MAKEFILE@ PULP_NN=DIR    PULP-NN's checkout: spmilp_pulp_nn.c
ifdef CMSIS_NN
ifeq ($(wildcard $(CMSIS_NN)/Include/arm_nnfunctions.h),)
$(error CMSIS_NN=$(CMSIS_NN): there is no Include/arm_nnfunctions.h; give the folder of CMSIS-NN)
endif
C99 += -isystem $(CMSIS_NN)/Include -DSPMILP_KERNEL_ADD=spmilp_cmsis_add \
    -DSPMILP_KERNEL_AVERAGEPOOL=spmilp_cmsis_average_pool \
    -DSPMILP_KERNEL_CONV=spmilp_cmsis_conv -DSPMILP_KERNEL_GEMM=spmilp_cmsis_gemm \
    -DSPMILP_KERNEL_MAXPOOL=spmilp_cmsis_max_pool -DSPMILP_KERNEL_SOFTMAX=spmilp_cmsis_softmax
RUNTIME += spmilp_cmsis_products.c spmilp_cmsis_others.c
VENDOR_FLAGS = -I$(CMSIS_NN)/Include $(wildcard $(CMSIS_NN)/Source/*/*.c)
endif
ifdef PULP_NN
ifeq ($(wildcard $(PULP_NN)/64bit/include/pulp_nn_kernels.h),)
$(error PULP_NN=$(PULP_NN): there is no 64bit/include/pulp_nn_kernels.h; give the folder of PULP-NN)
endif
C99 += -isystem $(PULP_NN)/64bit/include -DSPMILP_KERNEL_CONV=spmilp_pulp_conv \
    -DSPMILP_KERNEL_GEMM=spmilp_pulp_gemm
RUNTIME += spmilp_pulp_nn.c
VENDOR_FLAGS = -DNUM_CORES=1 -I$(PULP_NN)/64bit/include $(wildcard $(PULP_NN)/64bit/src/*.c)
endif
VENDOR = $(if $(VENDOR_FLAGS),vendor.o)
VENDOR_MPS2 = $(if $(VENDOR_FLAGS),vendor_mps2.o)
.DEFAULT_GOAL = $(PREFIX)_play

vendor.o: $(filter %.c,$(VENDOR_FLAGS))
	$(CC) $(CFLAGS) -w -r -nostdlib $(VENDOR_FLAGS) -o $@
vendor_mps2.o: $(filter %.c,$(VENDOR_FLAGS))
	$(ARM)gcc $(CFLAGS) $(ARM_FLAGS) -w -r -nostdlib $(VENDOR_FLAGS) -o $@
