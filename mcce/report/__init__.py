"""Texts and pictures of results: functions of frames, which know nothing of models and explainers."""
