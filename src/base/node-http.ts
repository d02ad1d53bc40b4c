/**
 * The module `node:http`. An `import` would read every export of it. On Node 22 and later, some of these exports are
 * getters that load Node's `fetch`, which would take half of the time that this package takes to load.
 */
export const http: typeof import('node:http') = process.getBuiltinModule('node:http')
