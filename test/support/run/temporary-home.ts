import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename } from 'node:path'
import { removeTemporaryFolder, temporaryFolder } from '../process/temporary-folder.js'

const PREFIX = 'esa-tests-'

/**
 * Gives this process and its children a new `TMPDIR`, and returns a function that removes it with everything
 * that tests and servers have left in it. It is also removed when this process ends in another way.
 */
export default async function useTemporaryHome(): Promise<() => Promise<void>> {
  // Another project of this test run has set it, or a test run of which a test started this one.
  if (basename(tmpdir()).startsWith(PREFIX)) return async () => {}
  const home = await temporaryFolder(PREFIX)
  // The user of the servers must be able to enter it.
  await chmod(home, 0o711)
  process.env['TMPDIR'] = home
  return () => removeTemporaryFolder(home)
}
