"""One family per kind of operator: shapes, regions, work.

    registry                                     the family of an ONNX operator type
    family, base                                 the protocol, and its defaults
    attributes, boxes                            typed attributes; arithmetic of boxes
    elementwise                                  unary, binary, variadic operators, quantisation
    products, conv, integers                     matrix products, Einsum; convolutions; int32 sums
    windows                                      sliding windows, and pooling over them
    reduce, normalisation                        reductions and sums; normalisations and Softmax
    moves, indexing, reshape, resize             operators that move elements
A family knows the operator alone; what it lies next to is the business of ``fuse``.
"""
