"""TensorFlow Lite models: their files, and the same networks in terms of ONNX."""
