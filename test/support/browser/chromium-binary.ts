import { findProgram } from '../process/find-program.js'

/** The path of a Chromium or Chrome, which may be installed for it. */
export const findChromium = (): string =>
  findProgram({
    variable: 'CHROMIUM',
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium',
    remedy:
      'Install it with `apt-get install -y chromium` (Debian), or name the binary of a Chromium or ' +
      'Chrome in the environment variable CHROMIUM.',
  })
