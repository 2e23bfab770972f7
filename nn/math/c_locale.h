/* nn/math/c_locale.h -- numbers in texts have a decimal point, whatever locale the program has chosen.
 *
 * A program that uses libhearsay may call setlocale(). In a German locale strtod() then reads "0,9" and
 * printf() writes it, so options would be refused and metrics would not be JSON. Every thread of the library
 * calls c_locale_enter() when it starts; a call of the API that reads or writes numbers enters and leaves.
 */
#ifndef NN_MATH_C_LOCALE_H
#define NN_MATH_C_LOCALE_H

#include <locale.h>

/* Sets the calling thread's locale to "C" and returns its former one, for c_locale_leave(). O(1). */
locale_t c_locale_enter(void);
void c_locale_leave(const locale_t *former);

/* Until the end of the block that it stands in, the thread has the locale "C". */
#define C_LOCALE_HERE                                                                              \
    __attribute__((cleanup(c_locale_leave), unused)) const locale_t c_locale_former =              \
        c_locale_enter()

#endif
