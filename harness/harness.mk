# The harness: command line, scheduling, judge, records, report. It links no engine; engines are loaded at run time.

HARNESS_SOURCES := $(wildcard harness/*.c)
HARNESS_OBJECTS := $(call objects,common,$(filter-out harness/main.c,$(HARNESS_SOURCES)))
HARNESS_MAIN := $(call objects,common,$(filter harness/main.c,$(HARNESS_SOURCES)))
SUITE_OBJECTS := $(HARNESS_OBJECTS) $(CASES_OBJECTS) $(SCENE_OBJECTS)
# As an archive, so that a test links only what it uses.
LIBSUITE := $(B)/lib/libsuite.a

PABD_BENCH := $(if $(HARNESS_MAIN),$(B)/pabd-bench)

$(call objects,common,$(HARNESS_SOURCES)): $(BUILD_INFO)

$(B)/pabd-bench: $(HARNESS_MAIN) $(SUITE_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) $(SUITE_LIBS) -o $@

$(LIBSUITE): $(SUITE_OBJECTS) $(FLAG_STAMP)
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# What a researcher types. OUT picks another folder; ARGS goes to `pabd-bench run` (ARGS='stack --engine pabd --repeat 1').
OUT ?=
ARGS ?=
.PHONY: bench bench-full ablation wp figures validate validate-full report setup-report
setup-report:
	@harness/setup/setup.sh report

define BENCH_RUN
	$(Q)$(PABD_BENCH) run --plan $@ --out $(or $(OUT),results/$@) $(ARGS)
	$(Q)$(PABD_BENCH) report $(or $(OUT),results/$@)
endef

bench: third-party setup-report ## Run the canonical cases (harness/plans/bench.json), write results/bench/report.html
	@$(MAKE) --no-print-directory phase-engines $(PABD_BENCH)
	$(BENCH_RUN)

bench-full: engines setup-report ## The same on all engines, with all sizes and repeats: hours
	@$(MAKE) --no-print-directory $(PABD_BENCH)
	$(BENCH_RUN)

ablation: third-party setup-report ## Change every ingredient of the solver, one at a time (minutes): results/ablation/report.html
	@$(MAKE) --no-print-directory phase-engines $(PABD_BENCH)
	$(BENCH_RUN)

wp: engines setup-report ## Work-precision: every engine over its knobs (ARGS='stack' for one case): results/wp/report.html
	@$(MAKE) --no-print-directory $(PABD_BENCH)
	$(BENCH_RUN)

FIGURES := fig-4 fig-8 fig-12
.PHONY: $(FIGURES)
figures $(FIGURES): third-party setup-report ## Figures of the paper with computed verdicts; fig-4, fig-8, fig-12: one of them
	@$(MAKE) --no-print-directory phase-engines $(PABD_BENCH)
	$(Q)$(PABD_BENCH) figures $(filter fig-%,$@) --out $(or $(OUT),results/figures)

report: setup-report ## Write the report of OUT (default results/bench) again
	@$(MAKE) --no-print-directory $(PABD_BENCH)
	$(Q)$(PABD_BENCH) report $(or $(OUT),results/bench)

validate: engines setup-report ## Closed forms and published references against every engine, a subset (minutes): results/validate
	@$(MAKE) --no-print-directory $(PABD_BENCH)
	$(Q)$(PABD_BENCH) validate --out $(or $(OUT),results/validate) $(ARGS)

validate-full: engines setup-report ## The same with all steps and durations: hours
	@$(MAKE) --no-print-directory $(PABD_BENCH)
	$(Q)$(PABD_BENCH) validate --subset full --out $(or $(OUT),results/validate-full) $(ARGS)

# The working tree against another revision, built and measured in one job. BASE: default where this branch left main.
# ACCEPT=1: changed results are meant. ARGS goes to `pabd-bench perf-check` (ARGS='stack --engine pabd:jacobi').
BASE ?=
ACCEPT ?=
.PHONY: perf-check perf-trials
perf-check: third-party ## Compare speed and results with BASE=revision, interleaved, on this machine
	@$(MAKE) --no-print-directory $(PABD_BENCH) $(B)/engines/pabd.so
	$(Q)MAKE='$(MAKE)' harness/perf_check.sh '$(BASE)' $(PABD_BENCH) $(if $(ACCEPT),--accept-changes) $(ARGS)

perf-trials: third-party ## Show on planted faults that perf-check finds them and gives no false alarms (half an hour)
	@$(MAKE) --no-print-directory $(PABD_BENCH)
	$(Q)MAKE='$(MAKE)' harness/perf_trials.sh --json results/reference/perf-trials.json
