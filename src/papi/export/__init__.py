"""A trained model for other programs: ONNX, TorchScript, pt2, safetensors, and the layout of Hugging Face's hub.

Imports `inference` and everything above it.
"""
