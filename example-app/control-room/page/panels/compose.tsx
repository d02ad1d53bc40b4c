import { Panel } from '../components/panel.js'

export function ComposePanel() {
  return (
    <Panel id="compose" title="Compose" about="">
      {null}
    </Panel>
  )
}
