// What lives in the workspace: actors, and the parts of what is inspected.
import * as vscode from "vscode";
import type { Actor, Evaluation, Inspection } from "./protocol";
import type { Server } from "./server";

export class Actors implements vscode.TreeDataProvider<Actor> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly server: Server) {}

  refresh(): void {
    this.changed.fire();
  }

  async getChildren(parent?: Actor): Promise<Actor[]> {
    if (parent || !this.server.can("beamtalk.actors")) return [];
    const { actors } = await this.server.call("beamtalk.actors", {});
    return actors ?? [];
  }

  getTreeItem(actor: Actor): vscode.TreeItem {
    const item = new vscode.TreeItem(actor.name ?? actor.class);
    item.id = actor.id;
    item.description = [actor.name ? actor.class : "", actor.state ?? "", actor.mailbox ? `${actor.mailbox} waiting` : ""].filter(Boolean).join(" · ");
    item.tooltip = `${actor.class} ${actor.id}`;
    item.iconPath = new vscode.ThemeIcon("person");
    item.command = { command: "beamtalk.inspectActor", title: "Inspect", arguments: [actor] };
    return item;
  }
}

type Part = { name: string; value: string; id?: string };

export class Inspector implements vscode.TreeDataProvider<Part> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private root: Part | undefined;

  constructor(private readonly server: Server) {}

  async show(id: string): Promise<Inspection> {
    const inspection = await this.server.call("beamtalk.inspect", { id });
    this.root = { name: inspection.class, value: inspection.value, id };
    this.first = inspection.parts;
    this.changed.fire();
    return inspection;
  }

  /** What an evaluation answered: an actor with what it holds, of anything else the text. */
  async showValue(name: string, evaluation: Evaluation): Promise<void> {
    const actor = evaluation.value?.match(/^Actor\([^,]+, ([\d.<>]+)\)$/)?.[1];
    if (actor) return void (await this.show(actor));
    this.root = { name, value: (evaluation.ok ? evaluation.value : evaluation.error?.message) ?? "" };
    this.first = [];
    this.changed.fire();
  }

  private first: Part[] = [];

  async getChildren(parent?: Part): Promise<Part[]> {
    if (!this.root) return [];
    if (!parent) return [this.root];
    if (parent === this.root) return this.first;
    if (!parent.id) return [];
    return (await this.server.call("beamtalk.inspect", { id: parent.id })).parts;
  }

  getTreeItem(part: Part): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(part.name, part === this.root ? Expanded : part.id ? Collapsed : None);
    item.description = part.value;
    item.tooltip = part.value;
    return item;
  }
}
