
# make -f @MAKEFILE@ blob       any plan: spmb_play plan.spmb [--loop] INPUT... OUTPUT...
.PHONY: blob
blob: spmb_play

spmb_play: spmb_play.c spmilp_blob.c $(RUNTIME) $(HOST) $(HEADERS) @MAKEFILE@
	$(CC) $(C99) $(WARNINGS) $(CFLAGS) $(filter %.c,$^) -o $@ -pthread -lm
