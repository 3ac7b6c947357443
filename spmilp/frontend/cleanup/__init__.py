"""Passes over the ONNX model, in the order that ``clean`` writes out.

    clean          the order, and the smallest passes: operator set, dynamic lengths, shapes
    constants      constant folding, and weights without values
    functions      operators that ONNX defines by others
    qlinear        onnxruntime's quantised operators, in QDQ form
    quantisation   run-time scales as arithmetic; four bits as bytes
    requantised    networks of integers in float tensors (Deeploy's RequantShift)
    recurrent      LSTM and GRU as one set of nodes per time step
    batch_norm     normalisation folded into weights
    layouts        transpositions around element-wise operators, which cancel
    nodes          helpers: new nodes, names and reasons, silence of libraries
Each pass changes the model in place, but for ``expand_functions``, which returns a new one.
"""
