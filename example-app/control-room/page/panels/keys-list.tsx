import type { CoreKey, RoomState } from '../../protocol.js'
import { ActionButton } from '../components/action-button.js'
import { Badge } from '../components/badge.js'
import { seconds } from '../components/words.js'
import { now } from '../state.js'

const KINDS: Readonly<Record<CoreKey['kind'], string>> = {
  dynamic: 'Dynamic: it is rotated',
  static: 'Static: it stays',
  catalogue: 'There for hostile tokens',
}

/** The keys that the core publishes, and which receiver has each. */
export function KeyList({ room }: { readonly room: RoomState }) {
  return (
    <ul class="keys-list">
      {room.core.keys.map((key) => (
        <Key key={key.kid} coreKey={key} room={room} />
      ))}
    </ul>
  )
}

interface KeyProps {
  readonly coreKey: CoreKey
  readonly room: RoomState
}

function Key({ coreKey, room }: KeyProps) {
  const { kid, kind, createdAt, isSigning } = coreKey
  const holders = room.receivers.filter(({ keySet }) => keySet?.keys.includes(kid))
  return (
    <li data-kid={kid} data-signing={isSigning}>
      <div>
        <p>
          <code>{kid}</code> {isSigning && <Signing kind={kind} />}
        </p>
        <p class="muted">
          {KINDS[kind]}. <Age since={createdAt} /> old. Known to{' '}
          {holders.map(({ name }) => name).join(' and ') || 'no receiver'}.
        </p>
      </div>
      {kind !== 'catalogue' && (
        <ActionButton name="remove-key" input={{ kid }} label={`Remove key ${kid}`} kind="danger">
          Remove
        </ActionButton>
      )}
    </li>
  )
}

/** A static key signs only what it is asked for; receivers refuse what it has signed. */
const Signing = ({ kind }: Pick<CoreKey, 'kind'>) => (
  <Badge tone="accepted">{kind === 'static' ? 'signs if asked' : 'signs'}</Badge>
)

const Age = ({ since }: { readonly since: number }) => <>{seconds(now.value - since)}</>
