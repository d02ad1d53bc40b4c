import { readFileSync } from 'node:fs'

/** The module of an entry point of a build of this package. `build` is the package's folder, as a URL. */
export function entryIn(build, name = '.') {
  const { exports } = JSON.parse(readFileSync(new URL('package.json', build), 'utf8'))
  return new URL(exports[name].default, build)
}

export const importEntry = (build, name) => import(entryIn(build, name))
