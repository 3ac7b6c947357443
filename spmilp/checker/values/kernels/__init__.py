"""NumPy kernels of the operators, for boxes of their outputs.

    registry       the kernel of an ONNX operator type
    call           what a kernel is given
    elementwise    element-wise operators, quantisation
    products       windows, pooling, convolutions, matrix products
    reductions     reductions, normalisations, Softmax
    moves          operators that move elements, Resize

``onnx.reference`` knows nearly all of these operators, but not boxes and partial sums, and takes
longer: a Relu of 4,096 elements 58 us instead of 7, a Conv of 3 x 3 1,118 us instead of 162, a
MaxPool 132 ms; its exponentials differ between processors.
"""
