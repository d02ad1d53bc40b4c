/**
 * The module `node:http`. An `import` of it reads every export, and on Node 22 and later some load the
 * whole of Node's `fetch`: half of the time that this package would take to load.
 */
export const http: typeof import('node:http') = process.getBuiltinModule('node:http')
