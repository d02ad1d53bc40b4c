import { findProgram } from '../process/find-program.js'

/** Returns the path of a Chromium or Chrome; root installs Chromium if there is none. */
export const findChromium = (): string =>
  findProgram({
    variable: 'CHROMIUM',
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium',
    remedy:
      'Install it with `apt-get install -y chromium` (Debian), or name the binary of a Chromium or ' +
      'Chrome in the environment variable CHROMIUM.',
  })
