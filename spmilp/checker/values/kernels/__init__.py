"""Kernels of the operators, for boxes of their outputs.

    registry       computes an operator, whole or a part of its reduction
    call           what a kernel is given
    reference      most operators, with ONNX's own reference
    products       windows, pooling, convolutions, matrix products
    special        what the reference computes with other bits, not rightly, or not at all
    quantisation   integers to reals and back

``onnx.reference`` takes a Conv of 3 x 3 in 1,118 us instead of 162, and a MaxPool in 132 ms; its
exponentials differ between processors, its LRN goes over batches instead of channels, and its
GlobalMaxPool over two axes however many there are.
"""
