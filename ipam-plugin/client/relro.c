/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what the linker calls PT_GNU_RELRO read-only: function pointers that are written once, at the start. glibc does
 * so in a static program too, musl leaves it to the dynamic linker, which is not there.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where the program was loaded: its first segment begins with its header. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

__attribute__((constructor)) static void seal_relocations(void) {
  const uintptr_t base = (uintptr_t)&__ehdr_start;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const ElfW(Phdr) *const headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  if (headers == NULL || page == 0) return;
  for (size_t n = 0; n < (size_t)getauxval(AT_PHNUM); n++) {
    if (headers[n].p_type != PT_GNU_RELRO) continue;
    /* What shares a page with something that is written stays writable, as with a dynamic linker. */
    const uintptr_t from = (base + headers[n].p_vaddr) & ~(page - 1);
    const uintptr_t to = (base + headers[n].p_vaddr + headers[n].p_memsz) & ~(page - 1);
    if (from < to) (void)mprotect((void *)from, to - from, PROT_READ);
  }
}
