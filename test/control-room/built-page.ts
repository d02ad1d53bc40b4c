import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type PageFiles, readPageFiles } from '../../example-app/control-room/server/page-files.js'

const BUILD = fileURLToPath(new URL('../../scripts/build-room.ts', import.meta.url))

let files: Promise<PageFiles> | undefined

/** The page as `npm run build:room` builds it of the sources of now. */
export function builtPage(): Promise<PageFiles> {
  files ??= promisify(execFile)(process.execPath, ['--import', 'tsx', BUILD]).then(readPageFiles)
  return files
}
