import { findProgram } from '../process/find-program.js'

/** Debian installs pgbouncer in this folder, which is on the PATH of root only. */
const DEBIAN_FOLDER = '/usr/sbin'

/** Returns the path of a pgbouncer; what is missing is installed by root, and unpacked by others. */
export const findPgbouncer = (): string =>
  findProgram({
    variable: 'PGBOUNCER_BIN',
    names: ['pgbouncer'],
    package: 'pgbouncer',
    isPortable: true,
    otherFolders: [DEBIAN_FOLDER],
    remedy:
      'Install it with `apt-get install -y pgbouncer` (Debian, Ubuntu) or `brew install pgbouncer` ' +
      '(macOS), or name the binary in the environment variable PGBOUNCER_BIN.',
  })
