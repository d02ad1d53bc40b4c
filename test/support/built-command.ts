import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OUTPUT_ONLY = ['--noCheck', '--declaration', 'false', '--isolatedDeclarations', 'false']

let folder: string | undefined
let main: string | undefined

/** The path of `service-auth` as JavaScript; `undefined` where this test file does not build it. */
export const builtCommand = (): string | undefined => main

/**
 * Has this test file run `service-auth` as users have it. Building takes the time in which the
 * TypeScript is translated for two runs.
 */
export function buildCommand(): void {
  beforeAll(async () => {
    // Inside of the project, where its packages are found.
    folder = await mkdtemp(`${ROOT}test/.blocks-command-`)
    const project = ['-p', `${ROOT}tsconfig.build.json`, '--outDir', `${folder}/dist`]
    await Promise.all([
      promisify(execFile)(`${ROOT}node_modules/.bin/tsc`, [...project, ...OUTPUT_ONLY]),
      copyFile(`${ROOT}package.json`, `${folder}/package.json`),
    ])
    main = `${folder}/dist/cli/main.js`
  })
  afterAll(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true })
  })
}
