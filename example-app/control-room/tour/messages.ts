import type { Played } from './tour-state.js'

export interface ToPlayer {
  readonly type: 'play'
  readonly title: string
}

export type FromPlayer =
  | { readonly type: 'ready' }
  | { readonly type: 'played'; readonly played: Played }
