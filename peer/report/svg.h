/* peer/report/svg.h -- a picture that a program drew, made fit to stand in a page with others.
 *
 * What stands before <svg ...> and behind </svg> goes (a declaration and a DOCTYPE have no place in
 * a page), comments go, and every id and every reference to one gets a prefix, as a page has one
 * name space. A picture with what none of ours has (a script, a link out) is refused.
 */
#ifndef PEER_REPORT_SVG_H
#define PEER_REPORT_SVG_H

#include "peer/report/text.h"

/* Append the picture in `drawn` (n bytes); `prefix` is of letters and digits. False: it is no whole
 * SVG, or refused, and nothing was appended. */
bool report_svg_embed(struct report_text *out, const char *drawn, size_t n, const char *prefix);

#endif
