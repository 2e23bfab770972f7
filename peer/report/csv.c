/* peer/report/csv.c -- rows of metrics as CSV. */
#include "peer/report/csv.h"

void report_csv_head(struct report_text *out)
{
    report_text_put(out, "run,peer,start");
    for (int i = 0; i < REPORT_WORDS; i++)
        report_text_print(out, ",%s", report_word_name((enum report_word)i));
    for (int i = 0; i < REPORT_COLUMNS; i++)
        report_text_print(out, ",%s", report_column_name((enum report_column)i));
    report_text_put(out, "\r\n");
}

void report_csv_peer(struct report_text *out, const struct report_run *run, size_t peer)
{
    const struct report_peer *p = &run->peer[peer];
    for (size_t i = 0; i < p->lines.n; i++) {
        const struct report_row *row = &p->lines.row[i];
        report_text_csv(out, run->label);
        report_text_put(out, ",");
        report_text_csv(out, p->name);
        report_text_print(out, ",%u", (unsigned)row->start);
        for (int w = 0; w < REPORT_WORDS; w++) {
            report_text_put(out, ",");
            report_text_csv(out, report_lines_word(&p->lines, row, (enum report_word)w));
        }
        for (int c = 0; c < REPORT_COLUMNS; c++) {
            report_text_put(out, ",");
            report_text_number(out, row->at[c]);
        }
        report_text_put(out, "\r\n");
    }
}
