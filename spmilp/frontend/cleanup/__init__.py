"""Passes over the ONNX model, in the order that ``clean`` writes out.

    opset, dimensions, shape_only   operator set, dynamic lengths, weights without values
    constants                       constant folding
    qlinear, recurrent, cells       QLinear operators and recurrences as simpler nodes
    functions                       operators that ONNX defines by others
    batch_norm                      normalization folded into weights
    builder, nodes, quiet           helpers: new nodes, names and reasons, silence of libraries
Each pass changes the model in place, but for ``functions``, which returns a new one.
"""
