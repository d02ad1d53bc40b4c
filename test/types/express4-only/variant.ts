// Compiles under the declarations of Express 4 only, so that this variant cannot turn into the other.
import type { Request } from 'express'

export function readParam(req: Request): string {
  return req.param('id')
}
