import { findProgram } from '../process/find-program.js'

/** Debian puts it there, which is on the PATH of root alone. */
const DEBIAN_FOLDER = '/usr/sbin'

/** The path of a pgbouncer, which may be installed for it. */
export const findPgbouncer = (): string =>
  findProgram({
    variable: 'PGBOUNCER_BIN',
    names: ['pgbouncer'],
    package: 'pgbouncer',
    otherFolders: [DEBIAN_FOLDER],
    remedy:
      'Install it with `apt-get install -y pgbouncer` (Debian, Ubuntu) or `brew install pgbouncer` ' +
      '(macOS), or name the binary in the environment variable PGBOUNCER_BIN.',
  })
