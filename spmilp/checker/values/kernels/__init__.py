"""NumPy kernels of the operators, for boxes of their outputs.

    registry       the kernel of an ONNX operator type
    call           what a kernel is given
    elementwise    element-wise operators, quantisation
    products       convolutions and matrix products
    pool           windows and pooling
    reductions     reductions, normalisations, Softmax
    moves          operators that move elements, Resize
Each takes a :class:`~spmilp.checker.values.kernels.call.Call` and returns an array.
"""
