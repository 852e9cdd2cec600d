# Thin on purpose: helpers/workshop.py does the work and needs no make (for Windows).
PYTHON ?= python3
ARGS ?=
COMMANDS = help lab fresh setup test test-all gpu lint notebooks bench sweep anki sheet clean

.DEFAULT_GOAL := help
.PHONY: $(COMMANDS)

$(COMMANDS):
	@$(PYTHON) helpers/workshop.py $@ $(ARGS)
