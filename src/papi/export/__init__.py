"""Exports a trained model: ONNX, TorchScript, pt2, safetensors, and a folder for the Hugging Face Hub.

Imports `inference` and everything above it.
"""
