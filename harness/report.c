/* The report: one self-contained page from the records of a results folder.
 *
 * The page is composed once, with a mark where each plot belongs; then gnuplot draws all plots, and the marks are
 * replaced by the pictures until the page is full (10 MB): later ones become links to their files. No scripts, no
 * network, nothing that is not in the folder. Every text from a record is escaped. */
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "report_internal.h"

#define PAGE_LIMIT 10000000 /* bytes */
#define PAGE_RESERVE 200000 /* kept free for the text after the last picture */
#define PLOT_MARK "\x01plot:"

void pabd_put_mark(pabd_report *report, const pabd_report_variant *variant) {
  PUT("<span class=\"mark\" style=\"color:%s\">%s</span>", variant->style.color, variant->style.symbol);
}

void pabd_put_plot(pabd_report *report, const pabd_plot *plot, const char *caption) {
  PUT("<figure%s>" PLOT_MARK
      "%s\x01<figcaption>%s <a href=\"plots/%s.png\">PNG</a> <a href=\"plots/%s.csv\">CSV</a>"
      "</figcaption></figure>\n",
      plot->is_wide ? " class=\"wide\"" : "", plot->name, caption ? caption : "", plot->name, plot->name);
}

void pabd_put_missing(pabd_report *report, const char *what, const char *command) {
  PUT("<p class=\"missing\">No records yet for %s. They come from <code>%s</code>.</p>\n", what, ESC(command));
}

static const char style_sheet[] =
    ":root{color-scheme:light}"
    "*{box-sizing:border-box}"
    "body{font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;color:#1a1a1a;"
    "background:#fff;margin:0 auto;padding:0 16px 48px;max-width:1320px}"
    "h1{font-size:26px;line-height:1.2;margin:28px 0 8px}h2{font-size:21px;margin:40px 0 8px;padding-top:10px;"
    "border-top:2px solid #1a1a1a}h3{font-size:17px;margin:28px 0 6px}h4{font-size:15px;margin:18px 0 4px}"
    "p{margin:6px 0 10px;max-width:78ch}a{color:#00528a}small,figcaption{font-size:12.5px;color:#444}"
    "code{font:13px/1.4 ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;overflow-wrap:anywhere}"
    "nav{font-size:14px;margin:10px 0}nav a{margin-right:14px;white-space:nowrap}"
    ".lead{font-size:16px}.mark{font-weight:700;font-size:1.05em}"
    ".scroll{overflow-x:auto;margin:8px 0 12px;-webkit-overflow-scrolling:touch}"
    "table{border-collapse:collapse;font-size:13px;line-height:1.35}"
    "th,td{padding:4px 8px;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}"
    "thead th{border-bottom:2px solid #444;vertical-align:bottom}td.n,th.n{text-align:right;white-space:nowrap}"
    "table.matrix td{min-width:98px}table.matrix tbody th,table.stick tbody th{position:sticky;left:0;background:#fff;"
    "font-weight:600;min-width:150px;max-width:230px;border-right:1px solid #ccc}"
    "table.matrix tbody th small{font-weight:400}"
    "tr.family th{background:#f2f1ec!important;font-size:12px;text-transform:uppercase;letter-spacing:.04em}"
    ".held b,span.held{color:#005a43}.collapsed,.diverged,.crashed,.timeout{background:#fdf0e6}"
    ".collapsed b,.diverged b,.crashed b,.timeout "
    "b,span.collapsed,span.diverged,span.crashed,span.timeout{color:#a23b00}"
    ".na{color:#666}.pass{color:#005a43;font-weight:600}.fail{color:#a23b00;font-weight:600}"
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:0 36px}.two h2{margin-top:24px}"
    ".claims{padding-left:0;list-style:none;margin:6px 0}.claims li{margin:0 0 9px;padding-left:12px;"
    "border-left:3px solid #bbb}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,380px),1fr));gap:10px "
    "18px;align-items:start}"
    ".scenes{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(46%,210px),1fr));gap:10px}"
    "figure{margin:0;min-width:0;max-width:560px}figure.wide{max-width:860px}figure "
    "svg{display:block;width:100%;height:auto}"
    ".scenes figure{border:1px solid #e3e1da;padding:4px}"
    "figcaption{padding:2px 4px;overflow-wrap:anywhere}details{margin:8px "
    "0}summary{cursor:pointer;font-weight:600;font-size:14px}"
    ".light-green{background:#e3f2e6}.light-amber{background:#fff3cf}.light-red{background:#fbe3da}.light-na{color:#"
    "777}"
    ".missing{color:#555;font-style:italic}.notes{font-size:12.5px;color:#333;padding-left:28px}"
    ".legend{font-size:13.5px;margin:8px 0}.legend span.item{display:inline-block;margin:0 16px 2px "
    "0;white-space:nowrap}"
    ".files{columns:3 260px;font-size:12px;padding-left:18px;overflow-wrap:anywhere}"
    "dl.env{display:grid;grid-template-columns:max-content 1fr;gap:1px 14px;font-size:13px;margin:4px 0}dl.env "
    "dt{color:#555}"
    "dl.env dd{margin:0;overflow-wrap:anywhere}"
    "@media(max-width:640px){body{padding:0 10px 32px;font-size:15px}h1{font-size:22px}"
    "table.matrix tbody th,table.stick tbody "
    "th{min-width:112px;max-width:126px;overflow-wrap:anywhere}th,td{padding:3px 5px}}"
    "@media "
    "print{body{max-width:none;font-size:10pt;padding:0}.scroll{overflow:visible}table{font-size:7.5pt;page-break-"
    "inside:auto}"
    "tr,figure,li{page-break-inside:avoid}th,td{padding:2px 3px}table.matrix td,table.matrix tbody "
    "th{min-width:0;position:static}"
    "a{color:inherit;text-decoration:none}h2,h3{page-break-after:avoid}"
    ".plots{grid-template-columns:1fr 1fr}.scenes{grid-template-columns:repeat(4,1fr)}}";

/* ---- head ---- */

void pabd_report_put_top(pabd_report *report, const char *title) {
  PUT("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>%s</title>\n"
      "<style>%s</style></head><body>\n",
      ESC(title), style_sheet);
}

static int is_first_value(const char **seen, int *count, int capacity, const char *text) {
  for (int k = 0; k < *count; ++k)
    if (strcmp(seen[k], text) == 0) return 0;
  if (*count < capacity) seen[(*count)++] = text;
  return 1;
}

static void put_head(pabd_report *report) {
  const char *name = strrchr(report->dir, '/');
  name = name && name[1] ? name + 1 : report->dir;
  pabd_report_put_top(report, pabd_text_format(&report->html, "Rigid-body benchmark: %s", name));
  PUT("<h1>Rigid multibody dynamics: %s</h1>\n", ESC(name));

  /* What ran, where, when. */
  const char *machines[8], *first = NULL, *last = NULL;
  int machine_count = 0, engine_count = 0, case_count = 0, na_count = 0;
  const char *engines[64], *cases[128];
  for (int r = 0; r < report->record_count; ++r) {
    const cJSON *env = cJSON_GetObjectItemCaseSensitive(report->records[r].root, "env");
    const char *date = pabd_json_text(env, "date", NULL);
    if (date && (!first || strcmp(date, first) < 0)) first = date;
    if (date && (!last || strcmp(date, last) > 0)) last = date;
    const char *gpu = pabd_json_text(env, "gpu", "none");
    is_first_value(machines, &machine_count, 8,
                   pabd_text_format(&report->html, "%s, %.0f cores%s%s",
                                    pabd_json_text(env, "cpu", "unknown processor"), pabd_json_number(env, "cores"),
                                    strcmp(gpu, "none") ? ", GPU " : "", strcmp(gpu, "none") ? gpu : ""));
    is_first_value(engines, &engine_count, 64, report->variants[report->records[r].variant].engine);
    is_first_value(cases, &case_count, 128, report->instances[report->records[r].instance].case_id);
    na_count += strcmp(pabd_json_text(report->records[r].root, "status", ""), "na") == 0;
  }
  PUT("<p class=\"lead\">%d runs of %d cases on %d engines", report->record_count, case_count, engine_count);
  if (na_count) PUT(" (%d of them not available)", na_count);
  for (int k = 0; k < machine_count; ++k) PUT("%s%s", k ? "; " : ", on ", ESC(machines[k]));
  if (first) PUT("; %.10s%s%.10s", first, strncmp(first, last, 10) ? " to " : "", strncmp(first, last, 10) ? last : "");
  PUT(". Every engine gets the same scene and one step of 1/60 s a frame; one judge measures all of them from poses "
      "and "
      "velocities alone.</p>\n");
  PUT("<p class=\"lead\"><b>How to read it:</b> a time counts only where the scene is still what it should be, so read "
      "status and error first and the frame time after them. "
      "Every number comes from the record files listed at the foot, by the command printed there.</p>\n");
  PUT("<nav><a href=\"#losses\">Losses and wins</a><a href=\"#summary\">Summary</a><a href=\"#sweeps\">Mass ratios</a>"
      "<a href=\"#cases\">Cases</a><a href=\"#studies\">Studies</a><a href=\"#foot\">Environment, settings, "
      "files</a></nav>\n");

  PUT("<p class=\"legend\">");
  for (int v = 0; v < report->variant_count; ++v) {
    if (!pabd_report_is_main(&report->variants[v])) continue;
    PUT("<span class=\"item\">");
    pabd_put_mark(report, &report->variants[v]);
    PUT(" %s%s</span> ", ESC(report->variants[v].label), report->variants[v].unavailable ? " (not available)" : "");
  }
  PUT("</p>\n");
  for (int k = 0; k < report->skip_count; ++k)
    PUT("<p class=\"missing\">skipped: <code>%s</code>: %s</p>\n", ESC(report->skips[k].file),
        ESC(report->skips[k].why));
}

/* ---- foot ---- */

static void put_list_item(pabd_report *report, const char *key, const cJSON *item) {
  const char *text = pabd_json_scalar(&report->html, item);
  if (cJSON_IsNull(item)) text = "unknown";
  PUT("<dt>%s</dt><dd>%s</dd>", ESC(key), ESC(text));
}

static void put_environments(pabd_report *report) {
  const char *seen[64];
  int count = 0;
  PUT("<h3>Environment</h3>\n");
  for (int r = 0; r < report->record_count; ++r) {
    const cJSON *env = cJSON_GetObjectItemCaseSensitive(report->records[r].root, "env"), *item;
    const char *key = "";
    /* Load and date differ from run to run and make no other environment; the command is listed below. */
    cJSON_ArrayForEach(item, env) {
      if (!item->string || !strcmp(item->string, "loadavg") || !strcmp(item->string, "date") ||
          !strcmp(item->string, "command"))
        continue;
      key = pabd_text_format(&report->html, "%s|%s=%s", key, item->string, pabd_json_scalar(&report->html, item));
    }
    if (!is_first_value(seen, &count, 64, key)) continue;
    double load_low = INFINITY, load_high = -INFINITY;
    for (int m = 0; m < report->record_count; ++m) {
      double load = pabd_json_number(cJSON_GetObjectItemCaseSensitive(report->records[m].root, "env"), "loadavg");
      if (!isnan(load)) load_low = fmin(load_low, load), load_high = fmax(load_high, load);
    }
    PUT("<dl class=\"env\">");
    cJSON_ArrayForEach(item, env) {
      if (!item->string || !strcmp(item->string, "loadavg") || !strcmp(item->string, "date") ||
          !strcmp(item->string, "command"))
        continue;
      put_list_item(report, item->string, item);
    }
    if (load_low <= load_high) PUT("<dt>load average</dt><dd>%.2f to %.2f before the runs</dd>", load_low, load_high);
    PUT("</dl>\n");
  }
  PUT("<h3>Commands</h3>\n");
  count = 0;
  for (int r = 0; r < report->record_count; ++r) {
    const char *command =
        pabd_json_text(cJSON_GetObjectItemCaseSensitive(report->records[r].root, "env"), "command", "");
    if (command[0] && is_first_value(seen, &count, 64, command)) PUT("<p><code>%s</code></p>\n", ESC(command));
  }
  PUT("<p>This page: <code>%s</code></p>\n", ESC(report->command_line ? report->command_line : "pabd-bench report"));
}

static void put_engines(pabd_report *report) {
  const char *seen[256];
  int count = 0;
  PUT("<h3>Engines</h3>\n<div class=\"scroll\"><table><thead><tr><th>engine</th><th>version</th><th>precision</th>"
      "<th>device</th><th>license</th><th>build</th></tr></thead><tbody>\n");
  for (int r = 0; r < report->record_count; ++r) {
    const cJSON *engine = cJSON_GetObjectItemCaseSensitive(report->records[r].root, "engine");
    static const char *const keys[] = {"name", "version", "precision", "device", "license", "build"};
    const char *key = "";
    for (int k = 0; k < 6; ++k)
      key = pabd_text_format(&report->html, "%s|%s", key, pabd_json_text(engine, keys[k], ""));
    if (!is_first_value(seen, &count, 256, key)) continue;
    PUT("<tr>");
    for (int k = 0; k < 6; ++k) PUT("<td>%s</td>", ESC(pabd_json_text(engine, keys[k], "")));
    PUT("</tr>\n");
  }
  PUT("</tbody></table></div>\n<h3>Settings in force</h3>\n<p>All settings of each engine and preset as the engine "
      "reported "
      "them, defaults too.</p>\n");
  for (int v = 0; v < report->variant_count; ++v) {
    const cJSON *engine = NULL;
    for (int r = 0; r < report->record_count && !cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(engine, "params"));
         ++r)
      if (report->records[r].variant == v) engine = cJSON_GetObjectItemCaseSensitive(report->records[r].root, "engine");
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(engine, "params"), *item;
    PUT("<details><summary>");
    pabd_put_mark(report, &report->variants[v]);
    PUT(" %s</summary>", ESC(report->variants[v].label));
    const char *source = pabd_json_text(engine, "preset_source", "");
    if (source[0]) PUT("<p>%s</p>", ESC(source));
    PUT("<p><code>");
    int first = 1;
    cJSON_ArrayForEach(item, params) {
      PUT("%s%s=%s", first ? "" : ", ", ESC(item->string ? item->string : ""),
          ESC(pabd_json_scalar(&report->html, item)));
      first = 0;
    }
    PUT("</code></p></details>\n");
  }
}

static void put_foot(pabd_report *report) {
  PUT("<h2 id=\"foot\">Environment, settings, files</h2>\n");
  put_environments(report);
  put_engines(report);
  int warned = 0;
  for (int r = 0; r < report->record_count; ++r) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(report->records[r].root, "warnings")) {
      if (!cJSON_IsString(item)) continue;
      if (!warned++)
        PUT("<h3>Warnings of the harness</h3>\n<details><summary>what looked odd in a run</summary><ul>\n");
      if (warned <= 200) PUT("<li><code>%s</code>: %s</li>\n", ESC(report->records[r].file), ESC(item->valuestring));
    }
  }
  if (warned > 200) PUT("<li>and %d more</li>\n", warned - 200);
  if (warned) PUT("</ul></details>\n");
  PUT("<h3>Records</h3>\n<details><summary>%d files</summary><ul class=\"files\">\n", report->record_count);
  for (int r = 0; r < report->record_count; ++r)
    PUT("<li><a href=\"records/%s\">%s</a></li>\n", ESC(report->records[r].file), ESC(report->records[r].file));
  PUT("</ul></details>\n</body></html>\n");
}

/* ---- pictures into the page ---- */

/* The SVG element of a gnuplot file without its prolog, comments, descriptions and names, which would repeat in one
 * page. */
static void put_svg(pabd_text *out, char *svg, const char *title) {
  char *start = strstr(svg, "<svg");
  if (!start) return;
  pabd_text_add(out, "<svg role=\"img\" aria-label=\"%s\"", title);
  for (char *c = start + 4; *c;) {
    char *next = c + strcspn(c, "<i\n");
    pabd_text_add_bytes(out, c, (size_t)(next - c));
    if (!*next) break;
    char *end = NULL;
    if (strncmp(next, "<!--", 4) == 0 && (end = strstr(next, "-->")))
      end += 3;
    else if (strncmp(next, "<title>", 7) == 0 && (end = strstr(next, "</title>")))
      end += 8;
    else if (strncmp(next, "<desc>", 6) == 0 && (end = strstr(next, "</desc>")))
      end += 7;
    else if (strncmp(next, "id=\"gnuplot_", 12) == 0 && (end = strchr(next + 4, '"')))
      end += 1;
    else if (*next == '\n')
      end = next + 1 + strspn(next + 1, "\n\r\t ");
    if (end) {
      if (*next == '\n') pabd_text_add_bytes(out, "\n", 1);
      c = end;
    } else {
      pabd_text_add_bytes(out, next, 1);
      c = next + 1;
    }
  }
}

static pabd_status fill_in(pabd_report *report, const pabd_plots *plots, pabd_text *out) {
  const char *at = report->html.data, *end = at + report->html.size;
  int left_out = 0;
  while (at < end) {
    const char *mark = strstr(at, PLOT_MARK);
    if (!mark) break;
    pabd_text_add_bytes(out, at, (size_t)(mark - at));
    mark += strlen(PLOT_MARK);
    const char *stop = strchr(mark, '\x01');
    if (!stop) break;
    char path[PABD_PATH_SIZE], *svg = NULL;
    size_t size = 0;
    pabd_path_format(path, "%s/plots/%.*s.svg", report->dir, (int)(stop - mark), mark);
    const char *title = "plot";
    for (int k = 0; k < plots->count; ++k)
      if (strlen(plots->items[k].name) == (size_t)(stop - mark) &&
          strncmp(plots->items[k].name, mark, (size_t)(stop - mark)) == 0)
        title = plots->items[k].title;
    size_t rest = (size_t)(end - stop);
    if (pabd_file_read(path, &svg, &size, NULL) != PABD_OK) {
      pabd_text_add(out, "<p class=\"missing\">No picture: %s.</p>",
                    pabd_text_escape(out, plots->trouble ? plots->trouble : "gnuplot wrote none"));
    } else if (out->size + size + rest + PAGE_RESERVE > PAGE_LIMIT) {
      ++left_out;
      pabd_text_add(out, "<p><a href=\"plots/%.*s.svg\">%s</a> (beside the page, which is full)</p>",
                    (int)(stop - mark), mark, pabd_text_escape(out, title));
    } else {
      put_svg(out, svg, pabd_text_escape(out, title));
    }
    free(svg);
    at = stop + 1;
  }
  pabd_text_add_bytes(out, at, (size_t)(end - at));
  return out->failed ? PABD_ERR_MEMORY : PABD_OK;
}

pabd_status pabd_report_finish(pabd_report *report, pabd_plots *plots, const char *path, pabd_error *error) {
  pabd_text page = {0};
  pabd_status status = pabd_plots_draw(report, plots, error);
  if (status == PABD_OK && (report->html.failed || fill_in(report, plots, &page) != PABD_OK))
    status = pabd_fail(error, PABD_ERR_MEMORY, "%s: no memory for the report", report->dir);
  if (status == PABD_OK) status = pabd_file_write_whole(path, page.data, page.size, error);
  if (status == PABD_OK && plots->trouble) fprintf(stderr, "report: %s\n", plots->trouble);
  pabd_text_free(&page);
  return status;
}

pabd_status pabd_report_write(const char *dir, const char *command_line, pabd_error *error) {
  pabd_report report_data = {.dir = dir, .command_line = command_line};
  pabd_report *report = &report_data;
  pabd_plots plots = {0};
  pabd_status status = pabd_report_read(report, error);
  if (status == PABD_OK) {
    put_head(report);
    pabd_report_put_claims(report);
    pabd_report_put_matrix(report);
    pabd_report_put_headline(report, &plots);
    pabd_report_put_work_precision(report, &plots);
    pabd_report_put_cases(report, &plots);
    pabd_report_put_studies(report, &plots);
    put_foot(report);
    char path[PABD_PATH_SIZE];
    pabd_path_format(path, "%s/report.html", dir);
    status = pabd_report_finish(report, &plots, path, error);
  }
  pabd_plots_free(&plots);
  pabd_report_free(report);
  return status;
}
