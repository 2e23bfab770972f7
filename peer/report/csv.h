/* peer/report/csv.h -- rows of metrics as CSV (RFC 4180: CRLF, quotes doubled).
 *
 * A head line; then a line for each peer and round, by runs, peers and rounds in their order:
 *
 *   run,peer,start,phase,rung,rung_by,round,rounds,...     then all of enum report_column
 *
 * `start` counts from 0; seconds and bytes are those of the file, since that start. What is not
 * known is an empty field. A number is written with as many digits as tell it.
 */
#ifndef PEER_REPORT_CSV_H
#define PEER_REPORT_CSV_H

#include "peer/report/run.h"
#include "peer/report/text.h"

void report_csv_head(struct report_text *out);
void report_csv_peer(struct report_text *out, const struct report_run *run, size_t peer);

#endif
