"""Contact sheet: samples of five worlds of the generator, with skin colour and true pulse."""

import sys

from phase_rppg.synth.contact_sheet import contact_sheet

worlds = ["studio", "motion", "phone", "laptop", "photo"]
contact_sheet(sys.argv[1], worlds, columns=3, size=48, workers=0)
