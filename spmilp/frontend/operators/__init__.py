"""One family per kind of operator: shapes, regions, work.

    registry            the family of an ONNX operator type, the geometries of a network
    geometry, boxes     what every family tells, and costs; arithmetic of boxes
    elementwise         unary, binary, variadic operators, quantisation
    products            convolutions, products of matrices, Einsum; int32 sums
    windows             sliding windows, and pooling over them
    reductions          reductions and sums; normalisations and Softmax
    moves, resize       operators that move elements
A family knows the operator alone; what it lies next to is the business of ``fuse``.
"""
