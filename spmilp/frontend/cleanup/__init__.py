"""Passes over the ONNX model, in the order that ``clean`` writes out.

    clean          the order, and the smallest passes: operator set, dynamic lengths, layouts
    constants      constant folding, weights without values, normalisation folded into weights
    quantisation   quantised networks of all forms as DequantizeLinear, operators, QuantizeLinear
    recurrent      LSTM and GRU as one set of nodes per time step
    nodes          helpers: new nodes, names and reasons, silence of libraries
Each pass changes the model in place.
"""
