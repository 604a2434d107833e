"""Texts and pictures of results: functions of frames, independent of models and explainers."""
