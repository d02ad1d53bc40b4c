import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename } from 'node:path'
import { removeTemporaryFolder, temporaryFolder } from '../../../example-app/temporary-folder.js'

export const PREFIX = 'esa-tests-'

/**
 * Gives this process, and those that it starts, a `TMPDIR` of their own, and returns a function that
 * removes it. It is also removed when this process ends by itself, or at the next start if it was
 * killed, with everything that tests and servers have left in it.
 */
export default async function useTemporaryHome(): Promise<() => Promise<void>> {
  // Another project of the same run has set it, or the run whose test started this one.
  if (basename(tmpdir()).startsWith(PREFIX)) return async () => {}
  const home = await temporaryFolder(PREFIX)
  // The user who runs the servers has to get to what is in it.
  await chmod(home, 0o711)
  process.env['TMPDIR'] = home
  return () => removeTemporaryFolder(home)
}
