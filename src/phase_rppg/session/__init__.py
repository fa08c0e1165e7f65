"""The streaming core: frames in, windows with a heart rate or a reason for none out.

session          push frames, get events            segment          frames without an interruption
face_pipeline    the measurement of one face        clock            resampling to a uniform clock
skin_sampler     skin colour and position           face_state       buffers of one face
network_feeder   crops to a streaming network       window_analyzer  rate and quality of a window
window_quality   spectral peak, quality features    gate             decides whether a number is shown
calibration      thresholds and coefficients        reasons          texts for every reason
"""
