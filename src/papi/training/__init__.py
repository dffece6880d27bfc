"""The training loop and what it needs: optimizer, evaluation, metrics, selection, calibration, devices.

Imports `methods`, `data` and `runs`.
"""
