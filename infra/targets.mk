# Targets of the stack, included by the Makefile.

.PHONY: cost smoke live

cost: $(CDK)/.ready ## idle and per-million estimate; PROFILE=dev
	@$(CDK)/bin/python -m infra.cost --profile $(or $(PROFILE),dev)

smoke: $(VENV)/.ready $(CDK)/.ready infra/node_modules/.ready ## deploy into ministack on loopback (wiring)
	@$(VENV)/bin/python -m infra.smoke

live: $(CDK)/.ready $(VENV)/.ready ## checks of a deployed stack; needs AWS credentials, skipped without
	@$(VENV)/bin/python -m infra.live --profile $(or $(PROFILE),dev)
