# The harness: command line, scheduling, judge, records, report. It links no engine; engines are loaded at run time.

HARNESS_SOURCES := $(wildcard harness/*.c)
HARNESS_OBJECTS := $(call objects,common,$(filter-out harness/main.c,$(HARNESS_SOURCES)))
HARNESS_MAIN := $(call objects,common,$(filter harness/main.c,$(HARNESS_SOURCES)))
SUITE_OBJECTS := $(HARNESS_OBJECTS) $(CASES_OBJECTS) $(SCENE_OBJECTS)

PABD_BENCH := $(if $(HARNESS_MAIN),$(B)/pabd-bench)

$(call objects,common,$(HARNESS_SOURCES)): $(BUILD_INFO)

$(B)/pabd-bench: $(HARNESS_MAIN) $(SUITE_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) $(SUITE_LIBS) -o $@
