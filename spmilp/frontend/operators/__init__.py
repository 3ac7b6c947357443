"""One family per kind of operator: shapes, regions, work.

    registry            the family of an ONNX operator type
    family, boxes       the protocol, its defaults, typed attributes; arithmetic of boxes
    elementwise         unary, binary, variadic operators, quantisation
    products            matrix products, Einsum, convolutions; int32 sums
    windows             sliding windows, and pooling over them
    reductions          reductions and sums; normalisations and Softmax
    moves, resize       operators that move elements
A family knows the operator alone; what it lies next to is the business of ``fuse``.
"""
