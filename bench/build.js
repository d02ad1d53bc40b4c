import { readFileSync } from 'node:fs'

/** Imports an entry point of a build of this package. `build` is the package's folder, as a URL. */
export function importEntry(build, name = '.') {
  const { exports } = JSON.parse(readFileSync(new URL('package.json', build), 'utf8'))
  return import(new URL(exports[name].default, build))
}
